//! The methods of probe-rs' traits that every probe of this crate answers alike: it speaks SWD to
//! an Arm debug port, and nothing else.
//!
//! Macros, because a trait of another crate cannot be given further defaults: each stands inside
//! the `impl` of one probe.

/// The methods of `RawDapAccess` that do not touch a register.
macro_rules! swd_only_dap_access {
    () => {
        fn jtag_sequence(
            &mut self,
            _cycles: u8,
            _tms: bool,
            _tdi: u64,
        ) -> Result<(), ::probe_rs::probe::DebugProbeError> {
            Err(::probe_rs::probe::DebugProbeError::CommandNotSupportedByProbe {
                command_name: "jtag_sequence",
            })
        }

        fn into_probe(self: Box<Self>) -> Box<dyn ::probe_rs::probe::DebugProbe> {
            self
        }

        fn core_status_notification(
            &mut self,
            _status: ::probe_rs::CoreStatus,
        ) -> Result<(), ::probe_rs::probe::DebugProbeError> {
            Ok(())
        }
    };
}

/// The methods of `DebugProbe` beside name, speed and reset.
macro_rules! swd_only_debug_probe {
    () => {
        fn attach(&mut self) -> Result<(), ::probe_rs::probe::DebugProbeError> {
            Ok(())
        }

        fn detach(&mut self) -> Result<(), ::probe_rs::Error> {
            Ok(())
        }

        fn select_protocol(
            &mut self,
            protocol: ::probe_rs::probe::WireProtocol,
        ) -> Result<(), ::probe_rs::probe::DebugProbeError> {
            match protocol {
                ::probe_rs::probe::WireProtocol::Swd => Ok(()),
                other => Err(::probe_rs::probe::DebugProbeError::UnsupportedProtocol(other)),
            }
        }

        fn active_protocol(&self) -> Option<::probe_rs::probe::WireProtocol> {
            Some(::probe_rs::probe::WireProtocol::Swd)
        }

        fn has_arm_interface(&self) -> bool {
            true
        }

        fn try_as_dap_probe(&mut self) -> Option<&mut dyn ::probe_rs::architecture::arm::DapProbe> {
            Some(self)
        }

        fn try_get_arm_debug_interface<'probe>(
            self: Box<Self>,
            sequence: ::std::sync::Arc<
                dyn ::probe_rs::architecture::arm::sequences::ArmDebugSequence,
            >,
        ) -> Result<
            Box<dyn ::probe_rs::architecture::arm::ArmDebugInterface + 'probe>,
            (Box<dyn ::probe_rs::probe::DebugProbe>, ::probe_rs::architecture::arm::ArmError),
        > {
            use ::probe_rs::architecture::arm::ArmCommunicationInterface;
            Ok(ArmCommunicationInterface::create(self, sequence, false))
        }

        fn into_probe(self: Box<Self>) -> Box<dyn ::probe_rs::probe::DebugProbe> {
            self
        }
    };
}

pub(crate) use {swd_only_dap_access, swd_only_debug_probe};
