//! A chip whose flash is modelled, through both frontends.

use nix::sys::signal::Signal;
use probe_rs::{
    BreakpointCause, CoreStatus, HaltReason, MemoryInterface as _, Permissions,
    VectorCatchCondition,
};

use super::*;

const BOARD: &str = "microbit";

/// A board that runs the program.
fn running(frontend: Frontend) -> (Bench, Session) {
    let bench = Bench::new(BOARD, frontend);
    let mut session = bench.attach();
    flash(&mut session, 0, &firmware::bytes(firmware::NRF51));
    session.core(0).unwrap().reset().unwrap();
    bench.rig.wait_for_text(firmware::PRINTS, 1);
    (bench, session)
}

#[test]
fn the_chip_is_recognised_and_flashed_with_its_own_algorithm() {
    for frontend in [Frontend::InProcess, Frontend::UnixServer, Frontend::TcpServer] {
        let bench = Bench::new(BOARD, frontend);
        let auto = probe_rs::config::TargetSelector::Auto;
        let mut session = bench.probe().attach(auto, Permissions::default()).unwrap();
        assert_eq!(session.target().name, "nRF51822_xxAA");
        // Blank flash is what erased flash is.
        assert_eq!(session.core(0).unwrap().read_word_32(0x3_fffc).unwrap(), u32::MAX);
        let program = firmware::bytes(firmware::NRF51);
        flash(&mut session, 0, &program);
        let mut core = session.core(0).unwrap();
        let mut found = vec![0; program.len()];
        core.read(0, &mut found).unwrap();
        assert_eq!(found, program);
        core.reset_and_halt(HALT).unwrap();
        assert_eq!(pc(&mut core), firmware::ENTRY);
        core.run().unwrap();
        bench.rig.wait_for_text(firmware::PRINTS, 1);
        core.reset().unwrap();
        bench.rig.wait_for_text(firmware::PRINTS, 2);
    }
}

#[test]
fn attaching_leaves_a_running_core_running_and_can_hold_it_in_reset() {
    for frontend in FACES {
        let (bench, session) = running(frontend);
        drop(session);
        let mut session = bench.attach();
        let mut core = session.core(0).unwrap();
        assert_eq!(core.status().unwrap(), CoreStatus::Running);
        let before = core.read_word_32(firmware::COUNTER).unwrap();
        wait_until(&mut core, "it does not count", |core| {
            core.read_word_32(firmware::COUNTER).unwrap() != before
        });
        drop(core);
        drop(session);
        let target = bench.board.target().unwrap();
        let mut session = bench.probe().attach_under_reset(target, Permissions::default()).unwrap();
        let mut core = session.core(0).unwrap();
        assert!(core.status().unwrap().is_halted());
        assert_eq!(pc(&mut core), firmware::ENTRY);
        core.run().unwrap();
        bench.rig.wait_for_text(firmware::PRINTS, 2);
    }
}

#[test]
fn breakpoints_and_steps() {
    for frontend in FACES {
        let (_bench, mut session) = running(frontend);
        let mut core = session.core(0).unwrap();
        core.set_hw_breakpoint(firmware::LOOP).unwrap();
        let status = wait_halted(&mut core);
        assert!(
            matches!(
                status,
                CoreStatus::Halted(HaltReason::Breakpoint(
                    BreakpointCause::Hardware | BreakpointCause::Unknown
                ))
            ),
            "{status:?}"
        );
        assert_eq!(pc(&mut core), firmware::LOOP);
        let counter = core.read_word_32(firmware::COUNTER).unwrap();
        for at in [2, 4, 6] {
            core.step().unwrap();
            assert_eq!(pc(&mut core), firmware::LOOP + at);
        }
        assert_eq!(core.read_word_32(firmware::COUNTER).unwrap(), counter + 1);
        // Once round the loop.
        core.run().unwrap();
        wait_halted(&mut core);
        assert_eq!(pc(&mut core), firmware::LOOP);
        core.clear_hw_breakpoint(firmware::LOOP).unwrap();
        core.run().unwrap();
        wait_until(&mut core, "it does not run on", |core| {
            core.read_word_32(firmware::COUNTER).unwrap() > counter + 3
        });
        core.halt(HALT).unwrap();
        assert!(core.status().unwrap().is_halted());
    }
}

#[test]
fn registers_hold_what_is_written() {
    for frontend in FACES {
        let (_bench, mut session) = running(frontend);
        let mut core = session.core(0).unwrap();
        core.halt(HALT).unwrap();
        for register in 0..13_u16 {
            core.write_core_reg(probe_rs::RegisterId(register), 0x1000 + u32::from(register))
                .unwrap();
        }
        core.write_core_reg(core.program_counter().id(), firmware::BKPT_AT as u32 - 2).unwrap();
        core.step().unwrap();
        for register in 0..13_u16 {
            let found: u32 = core.read_core_reg(probe_rs::RegisterId(register)).unwrap();
            assert_eq!(found, 0x1000 + u32::from(register));
        }
        assert_eq!(pc(&mut core), firmware::BKPT_AT);
    }
}

#[test]
fn both_stack_pointers_and_the_masks_are_reached() {
    for frontend in FACES {
        let (_bench, mut session) = running(frontend);
        let mut core = session.core(0).unwrap();
        let [msp, psp, masks] = [17_u16, 18, 20].map(probe_rs::RegisterId);
        core.halt(HALT).unwrap();
        assert_eq!(core.read_core_reg::<u32>(msp).unwrap(), 0x2000_1000);
        assert_eq!(core.read_core_reg::<u32>(masks).unwrap(), 0);
        let before = core.read_core_reg::<u32>(15_u16).unwrap();
        core.write_core_reg(psp, 0x2000_0700_u32).unwrap();
        core.write_core_reg(masks, 1_u32).unwrap();
        core.write_core_reg(msp, 0x2000_0ff0_u32).unwrap();
        assert_eq!(core.read_core_reg::<u32>(psp).unwrap(), 0x2000_0700);
        assert_eq!(core.read_core_reg::<u32>(masks).unwrap(), 1);
        assert_eq!(core.read_core_reg::<u32>(13_u16).unwrap(), 0x2000_0ff0);
        assert_eq!(core.read_core_reg::<u32>(15_u16).unwrap(), before);
        core.run().unwrap();
        command(&mut core, firmware::USE_PSP);
        wait_until(&mut core, "the command is not taken", |core| {
            core.read_word_32(firmware::COMMAND).unwrap() == 0
        });
        core.set_hw_breakpoint(firmware::LOOP).unwrap();
        wait_halted(&mut core);
        assert_eq!(core.read_core_reg::<u32>(masks).unwrap(), 2 << 24 | 1);
        assert_eq!(core.read_core_reg::<u32>(psp).unwrap(), 0x2000_0800);
        assert_eq!(core.read_core_reg::<u32>(13_u16).unwrap(), 0x2000_0800);
        assert_eq!(core.read_core_reg::<u32>(msp).unwrap(), 0x2000_0ff0);
    }
}

#[test]
fn memory_of_any_width_answers_while_the_core_runs() {
    for frontend in FACES {
        let (_bench, mut session) = running(frontend);
        let mut core = session.core(0).unwrap();
        const RAM: u64 = 0x2000_0900;
        core.write_32(RAM, &[0x4433_2211, 0x8877_6655]).unwrap();
        core.write_word_8(RAM + 1, 0xaa).unwrap();
        core.write_word_16(RAM + 6, 0xbbcc).unwrap();
        let mut bytes = [0; 8];
        core.read_8(RAM, &mut bytes).unwrap();
        assert_eq!(bytes, [0x11, 0xaa, 0x33, 0x44, 0x55, 0x66, 0xcc, 0xbb]);
        assert_eq!(core.read_word_16(RAM + 6).unwrap(), 0xbbcc);
        assert_eq!(core.read_word_8(RAM + 3).unwrap(), 0x44);
        // A device: GPIO OUTSET reads back as OUT.
        core.write_word_32(0x5000_0508, 0x30).unwrap();
        assert_eq!(core.read_word_32(0x5000_0504).unwrap() & 0x30, 0x30);
        core.write_word_32(0x5000_050c, 0x10).unwrap();
        assert_eq!(core.read_word_32(0x5000_0504).unwrap() & 0x30, 0x20);
        assert_eq!(core.status().unwrap(), CoreStatus::Running);
    }
}

#[test]
fn an_access_to_nowhere_fails_alone() {
    for frontend in FACES {
        let (_bench, mut session) = running(frontend);
        let mut core = session.core(0).unwrap();
        for _ in 0..3 {
            core.read_word_32(0x6000_0000).unwrap_err();
            core.write_word_32(0x6000_0000, 1).unwrap_err();
            core.read(0x2000_3ff0, &mut [0; 64]).unwrap_err();
            core.write_32(0x2000_3ff8, &[1, 2, 3, 4]).unwrap_err();
        }
        core.write_word_32(0x2000_0900, 0x55aa).unwrap();
        assert_eq!(core.read_word_32(0x2000_0900).unwrap(), 0x55aa);
        core.halt(HALT).unwrap();
    }
}

#[test]
fn a_hard_fault_is_caught_at_its_vector() {
    for frontend in FACES {
        let (_bench, mut session) = running(frontend);
        let mut core = session.core(0).unwrap();
        core.enable_vector_catch(VectorCatchCondition::HardFault).unwrap();
        command(&mut core, firmware::FAULT);
        let status = wait_halted(&mut core);
        assert_eq!(status, CoreStatus::Halted(HaltReason::Exception));
        assert_eq!(pc(&mut core), firmware::HARD_FAULT);
        assert_eq!(core.read_core_reg::<u32>(16_u16).unwrap() & 0x1ff, 3);
        let sp = core.read_core_reg::<u32>(13_u16).unwrap();
        assert_eq!(u64::from(core.read_word_32(u64::from(sp) + 24).unwrap()), firmware::FAULT_AT);
        core.reset_and_halt(HALT).unwrap();
        assert_eq!(pc(&mut core), firmware::ENTRY);
    }
}

#[test]
fn a_breakpoint_instruction_halts_and_can_be_passed() {
    for frontend in FACES {
        let (_bench, mut session) = running(frontend);
        let mut core = session.core(0).unwrap();
        for _ in 0..3 {
            command(&mut core, firmware::BKPT);
            let status = wait_halted(&mut core);
            assert!(matches!(status, CoreStatus::Halted(HaltReason::Breakpoint(_))), "{status:?}");
            assert_eq!(pc(&mut core), firmware::BKPT_AT);
            assert_eq!(core.read_core_reg::<u32>(16_u16).unwrap() & 0x1ff, 0);
            let counter = core.read_word_32(firmware::COUNTER).unwrap();
            core.run().unwrap();
            wait_until(&mut core, "it does not run on", |core| {
                core.read_word_32(firmware::COUNTER).unwrap() > counter
            });
        }
    }
}

#[test]
fn a_lock_up_is_seen_and_recovered_by_a_reset() {
    for frontend in FACES {
        let (bench, mut session) = running(frontend);
        let mut core = session.core(0).unwrap();
        for round in 0..2 {
            command(&mut core, firmware::LOCK_UP);
            wait_until(&mut core, "it does not lock up", |core| {
                core.status().unwrap() == CoreStatus::LockedUp
            });
            core.read_word_32(firmware::COUNTER).unwrap_err();
            // Flash is read as a reset will find it.
            let program = firmware::bytes(firmware::NRF51);
            let mut read = vec![0; program.len()];
            core.read(0, &mut read).unwrap();
            assert_eq!(read, program);
            core.halt(HALT).unwrap();
            // It was in its fault handler.
            let at = pc(&mut core);
            assert!((firmware::HARD_FAULT..firmware::HARD_FAULT + 16).contains(&at), "{at:#x}");
            core.reset().unwrap();
            bench.rig.wait_for_text(firmware::PRINTS, 2 + round);
            assert_eq!(core.status().unwrap(), CoreStatus::Running);
        }
        assert_eq!(bench.board.stats().launches, 3);
    }
}

#[test]
fn a_blank_chip_locks_up_and_can_be_flashed() {
    for frontend in FACES {
        let bench = Bench::new(BOARD, frontend);
        let mut session = bench.attach();
        let mut core = session.core(0).unwrap();
        core.reset().unwrap();
        assert_eq!(core.status().unwrap(), CoreStatus::LockedUp);
        // It can be halted and sent elsewhere: to a function in RAM, as flashing does.
        core.halt(HALT).unwrap();
        core.write_32(0x2000_0000, &[0xbe00_3001]).unwrap();
        for (register, value) in [(0_u16, 41_u32), (15, 0x2000_0000), (16, 1 << 24)] {
            core.write_core_reg(register, value).unwrap();
        }
        core.run().unwrap();
        wait_halted(&mut core);
        assert_eq!(core.read_core_reg::<u32>(0_u16).unwrap(), 42);
        core.reset_and_halt(HALT).unwrap();
        drop(core);
        flash(&mut session, 0, &firmware::bytes(firmware::NRF51));
        session.core(0).unwrap().reset().unwrap();
        bench.rig.wait_for_text(firmware::PRINTS, 1);
        assert_eq!(bench.board.stats().launches, 1);
    }
}

/// A sleeping core is woken before it can be asked for some registers, whatever its stack.
#[test]
fn a_core_that_sleeps_without_a_stack_tells_its_registers() {
    /// `wfi`, and back to it.
    const SLEEPS: u32 = 0xe7fd_bf30;
    const RAM: u64 = 0x2000_0000;
    /// CONTROL and the masks, which only the core itself can read.
    const SPECIAL: u16 = 20;
    for frontend in FACES {
        let (_bench, mut session) = running(frontend);
        let mut core = session.core(0).unwrap();
        core.halt(HALT).unwrap();
        core.write_word_32(RAM, SLEEPS).unwrap();
        for stack in [RAM + 8, 0x6000_0000, RAM + 0x3ff8] {
            core.write_core_reg(13_u16, stack as u32).unwrap();
            core.write_core_reg(15_u16, RAM as u32).unwrap();
            for _ in 0..4 {
                core.run().unwrap();
                core.halt(HALT).unwrap();
                assert_eq!(core.read_core_reg::<u32>(SPECIAL).unwrap(), 0);
                assert_eq!(core.read_core_reg::<u32>(13_u16).unwrap(), stack as u32);
                assert!((RAM..RAM + 4).contains(&pc(&mut core)));
            }
        }
    }
}

#[test]
fn a_reset_by_the_program_is_told() {
    for frontend in FACES {
        let (bench, mut session) = running(frontend);
        let mut core = session.core(0).unwrap();
        const DHCSR: u64 = 0xe000_edf0;
        const S_RESET_ST: u32 = 1 << 25;
        core.read_word_32(DHCSR).unwrap();
        assert_eq!(core.read_word_32(DHCSR).unwrap() & S_RESET_ST, 0);
        command(&mut core, firmware::RESET);
        wait_until(&mut core, "no reset is told", |core| {
            core.read_word_32(DHCSR).unwrap() & S_RESET_ST != 0
        });
        assert_eq!(core.read_word_32(DHCSR).unwrap() & S_RESET_ST, 0);
        bench.rig.wait_for_text(firmware::PRINTS, 2);
    }
}

#[test]
fn an_emulator_that_is_killed_is_an_error_and_no_hang() {
    for frontend in FACES {
        let (bench, mut session) = running(frontend);
        let mut core = session.core(0).unwrap();
        bench.rig.signal(Signal::SIGKILL);
        wait_until(&mut core, "it goes on", |core| core.read_word_32(0).is_err());
        let began = std::time::Instant::now();
        for _ in 0..20 {
            core.read_word_32(0).unwrap_err();
            core.status().unwrap_err();
            core.reset().unwrap_err();
        }
        assert!(began.elapsed() < TIMEOUT);
        if frontend == Frontend::InProcess {
            let error = core.read_word_32(0).unwrap_err();
            let told = format!(
                "{:#}",
                std::iter::successors(Some(&error as &dyn std::error::Error), |e| e.source(),)
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(": ")
            );
            assert!(told.contains("SIGKILL"), "{told}");
        }
    }
}

#[test]
fn an_emulator_that_hangs_is_given_up() {
    let (bench, mut session) = running(Frontend::InProcess);
    let mut core = session.core(0).unwrap();
    bench.rig.signal(Signal::SIGSTOP);
    // Its owner notices after five seconds, and the channels' own limit is ten.
    wait_until(&mut core, "it goes on", |core| core.read_word_32(0).is_err());
    core.status().unwrap_err();
    bench.rig.wait_until_off();
}

#[test]
fn what_the_flash_holds_moves_to_another_board() {
    let (bench, session) = running(Frontend::InProcess);
    drop(session);
    let image = bench.board.flash_image().unwrap();
    assert_eq!(image.len(), 1);
    assert_eq!((image[0].start, image[0].bytes.len()), (0, 256 << 10));
    bench.board.power_off();
    bench.rig.wait_until_off();
    bench.board.flash_image().unwrap();
    let other = Bench::new(BOARD, Frontend::InProcess);
    other.board.set_flash_image(&image).unwrap();
    other.board.run_free().unwrap();
    other.rig.wait_for_text(firmware::PRINTS, 1);
    let mut session = other.attach();
    assert_eq!(session.core(0).unwrap().status().unwrap(), CoreStatus::Running);
    let outside = crate::MemoryRange { start: 0x3_fffc, bytes: vec![0; 8] };
    other.board.set_flash_image(&[outside]).unwrap_err();
}

#[test]
fn the_emulator_goes_with_the_last_handle() {
    let rig = Rig::new(BOARD);
    let board = rig.board();
    let server = board.serve(ServeAt::Unix(rig.path("probe"))).unwrap();
    drop(board);
    drop(server);
    rig.wait_until_off();
    assert!(!rig.path("probe").exists());
}
