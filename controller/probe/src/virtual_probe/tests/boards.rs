//! Every board that says in its profile what a probe finds on it.

use probe_rs::{CoreStatus, HaltReason, MemoryInterface as _, VectorCatchCondition};

use super::*;

/// Board, program, where it lies, and whether accesses to nowhere fault.
const BOARDS: &[(&str, &str, u64, bool)] = &[
    ("microbit", firmware::NRF51, 0, true),
    ("mps2-an385", firmware::MPS2, 0, true),
    ("mps2-an386", firmware::MPS2, 0, true),
    ("netduinoplus2", firmware::STM32F4, 0x0800_0000, true),
    ("stm32vldiscovery", firmware::STM32F1, 0x0800_0000, true),
    ("lm3s6965evb", firmware::LM3S, 0, false),
];

/// Loads the program as RAM is loaded or flash is flashed, and lets it run.
fn running(board: &str, program: &str, base: u64, frontend: Frontend) -> (Bench, Session) {
    let bench = Bench::new(board, frontend);
    let mut session = bench.attach();
    flash(&mut session, base, &firmware::bytes(program));
    let mut core = session.core(0).unwrap();
    core.reset_and_halt(HALT).unwrap();
    assert_eq!(pc(&mut core), base + firmware::ENTRY, "{board}");
    core.run().unwrap();
    drop(core);
    bench.rig.wait_for_text(firmware::PRINTS, 1);
    (bench, session)
}

#[test]
fn every_board_that_claims_to_can_be_debugged() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../board-profiles");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|ext| ext == "toml")
            && rig::profile(stem).emulation.is_some_and(|emulation| emulation.debug.is_some())
        {
            assert!(BOARDS.iter().any(|board| board.0 == stem), "{stem} is not tested");
        }
    }
}

#[test]
fn programs_are_loaded_run_stopped_and_caught() {
    for &(board, program, base, faults) in BOARDS {
        let (bench, mut session) = running(board, program, base, Frontend::InProcess);
        let mut core = session.core(0).unwrap();
        assert_eq!(core.status().unwrap(), CoreStatus::Running, "{board}");
        core.set_hw_breakpoint(base + firmware::LOOP).unwrap();
        wait_halted(&mut core);
        assert_eq!(pc(&mut core), base + firmware::LOOP, "{board}");
        core.step().unwrap();
        core.step().unwrap();
        assert_eq!(pc(&mut core), base + firmware::LOOP + 4, "{board}");
        assert_eq!(core.read_core_reg::<u32>(17_u16).unwrap(), 0x2000_1000, "{board}");
        core.clear_hw_breakpoint(base + firmware::LOOP).unwrap();
        core.run().unwrap();
        command(&mut core, firmware::BKPT);
        wait_halted(&mut core);
        assert_eq!(pc(&mut core), base + firmware::BKPT_AT, "{board}");
        assert_eq!(core.read_core_reg::<u32>(16_u16).unwrap() & 0x1ff, 0, "{board}");
        core.run().unwrap();
        command(&mut core, firmware::RESET);
        bench.rig.wait_for_text(firmware::PRINTS, 2);
        if faults {
            core.enable_vector_catch(VectorCatchCondition::HardFault).unwrap();
            command(&mut core, firmware::FAULT);
            let status = wait_halted(&mut core);
            assert_eq!(status, CoreStatus::Halted(HaltReason::Exception), "{board}");
            assert_eq!(pc(&mut core), base + firmware::HARD_FAULT, "{board}");
            let sp = core.read_core_reg::<u32>(13_u16).unwrap();
            let stacked = core.read_word_32(u64::from(sp) + 24).unwrap();
            assert_eq!(u64::from(stacked), base + firmware::FAULT_AT, "{board}");
        }
        core.reset().unwrap();
        bench.rig.wait_for_text(firmware::PRINTS, 3);
    }
}

#[test]
fn programs_outlive_a_lock_up_where_no_flash_is_modelled() {
    for &(board, program, base, faults) in BOARDS {
        if !faults {
            continue;
        }
        let (bench, mut session) = running(board, program, base, Frontend::UnixServer);
        let mut core = session.core(0).unwrap();
        core.write_word_32(firmware::COUNTER + 0x40, 7).unwrap();
        command(&mut core, firmware::LOCK_UP);
        wait_until(&mut core, "it does not lock up", |core| {
            core.status().unwrap() == CoreStatus::LockedUp
        });
        core.reset().unwrap();
        bench.rig.wait_for_text(firmware::PRINTS, 2);
        // The way back is a power cycle: RAM has lost what it held.
        assert_eq!(core.read_word_32(firmware::COUNTER + 0x40).unwrap(), 0, "{board}");
    }
}

#[test]
fn a_program_in_ram_runs_after_vtor_was_moved() {
    // Position independent but for its vectors: copied to RAM, entered by hand.
    let (bench, mut session) = running("mps2-an385", firmware::MPS2, 0, Frontend::InProcess);
    let mut core = session.core(0).unwrap();
    core.halt(HALT).unwrap();
    const RAM: u64 = 0x2010_0000;
    let mut program = firmware::bytes(firmware::MPS2);
    for vector in program[4..0x40].chunks_mut(4) {
        let at = u32::from_le_bytes(vector.try_into().unwrap()) + RAM as u32;
        vector.copy_from_slice(&at.to_le_bytes());
    }
    core.write(RAM, &program).unwrap();
    core.write_word_32(0xe000_ed08, RAM as u32).unwrap();
    core.write_core_reg(core.program_counter().id(), (RAM + firmware::ENTRY) as u32).unwrap();
    core.run().unwrap();
    bench.rig.wait_for_text(firmware::PRINTS, 2);
    core.enable_vector_catch(VectorCatchCondition::HardFault).unwrap();
    command(&mut core, firmware::FAULT);
    wait_halted(&mut core);
    assert_eq!(pc(&mut core), RAM + firmware::HARD_FAULT);
}

#[test]
fn floating_point_registers_hold_what_is_written() {
    for (board, program, base) in
        [("mps2-an386", firmware::MPS2, 0), ("netduinoplus2", firmware::STM32F4, 0x0800_0000)]
    {
        for frontend in FACES {
            let (_bench, mut session) = running(board, program, base, frontend);
            let mut core = session.core(0).unwrap();
            core.halt(HALT).unwrap();
            // CPACR: the unit is on for everybody.
            core.write_word_32(0xe000_ed88, 0xf << 20).unwrap();
            assert!(core.fpu_support().unwrap(), "{board}");
            let s = |index: u16| probe_rs::RegisterId(0x40 + index);
            for index in 0..32 {
                core.write_core_reg(s(index), 0x3f80_0000 + u32::from(index)).unwrap();
            }
            core.write_core_reg(probe_rs::RegisterId(0x21), 0x0300_0000_u32).unwrap();
            core.step().unwrap();
            for index in 0..32 {
                let found = core.read_core_reg::<u32>(s(index)).unwrap();
                assert_eq!(found, 0x3f80_0000 + u32::from(index), "{board} s{index}");
            }
            let fpscr = core.read_core_reg::<u32>(probe_rs::RegisterId(0x21)).unwrap();
            assert_eq!(fpscr, 0x0300_0000, "{board}");
        }
    }
}
