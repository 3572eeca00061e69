//! A small firmware project with one bug, as a git repository: a ring buffer that accepts a ninth byte.

use std::path::PathBuf;
use std::process::Command;

use crate::workshop::Workshop;

const START: &str = r#"#include <stdint.h>
extern uint32_t stack_top;
int main(void);
void reset(void) { main(); for (;;) __asm volatile("wfi"); }
static void hang(void) { for (;;) { } }
__attribute__((section(".vectors"), used)) const void *const vectors[16] = {
    &stack_top, reset, hang, hang, hang, hang, hang };
#define UART ((volatile uint32_t *)0x40004000)
void put(const char *text)
{
    UART[2] = 1;
    while (*text) {
        while (UART[1] & 1) { }
        UART[0] = *text++;
    }
}
void *memset(void *to, int byte, unsigned n)
{
    for (char *at = to; n--; at++) *at = byte;
    return to;
}
"#;

const RING_H: &str = "struct ring { unsigned char data[8]; unsigned head, count; };\n\
    int ring_put(struct ring *r, int v);\n";

pub(crate) const RING: &str = "#include \"ring.h\"\n\n\
    int ring_put(struct ring *r, int v)\n{\n    if (r->count > 8)\n        return 0;\n    \
    r->data[(r->head + r->count) % 8] = v;\n    r->count++;\n    return 1;\n}\n";

const TEST: &str = r#"#include "../src/ring.h"
void put(const char *text);
static int test_takes_one(void)
{
    struct ring r = { 0 };
    return ring_put(&r, 1) && r.count == 1;
}
static int test_refuses_when_full(void)
{
    struct ring r = { 0 };
    for (int i = 0; i < 8; i++)
        if (!ring_put(&r, i)) return 0;
    return !ring_put(&r, 9);
}
int main(void)
{
    int one = test_takes_one(), full = test_refuses_when_full();
    put(one ? "test/test_ring.c:3:test_takes_one:PASS\n" : "test/test_ring.c:3:test_takes_one:FAIL\n");
    put(full ? "test/test_ring.c:8:test_refuses_when_full:PASS\n"
             : "test/test_ring.c:8:test_refuses_when_full:FAIL: took a ninth\n");
    put("\n-----------------------\n2 Tests ");
    put(one && full ? "0 Failures 0 Ignored \nOK\n" : one || full ? "1 Failures 0 Ignored \nFAIL\n" : "2 Failures 0 Ignored \nFAIL\n");
    return 0;
}
"#;

const LINK: &str = "ENTRY(reset)\n\
    MEMORY { rom : ORIGIN = 0, LENGTH = 4M ram : ORIGIN = 0x20000000, LENGTH = 4M }\n\
    SECTIONS { .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } > rom\n\
    .bss : { *(.data*) *(.bss*) } > ram stack_top = 0x20010000; }\n";

const MAKEFILE: &str = "SOURCES = src/start.c src/ring.c test/test_ring.c\n\
    out/app.elf: $(SOURCES) src/ring.h link.ld\n\
    \tmkdir -p out\n\
    \tarm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -O1 -g -ffreestanding -nostdlib \\\n\
    \t\t-ffile-prefix-map=$(CURDIR)=. -T link.ld -o $@ $(SOURCES)\n";

const PLAN: &str = r#"version = 1
name = "ring"
goal = "every case passes"
timeout = "30s"
[[stage]]
name = "unit"
[[stage.step]]
name = "run"
goal = "every case passes"
actions = [{ deploy = true }, { power = "cycle" }, { wait_for_results = true }]
"#;

/// What an agent runs that repairs the project.
pub(crate) const MEND: &str =
    "sed -i 's/count > 8/count >= 8/' src/ring.c; echo HYPOTHESIS: the bound is one too high";

/// The project in a workshop.
pub(crate) struct RepairProject<'w> {
    pub(crate) workshop: &'w Workshop,
    pub(crate) repo: PathBuf,
}

impl<'w> RepairProject<'w> {
    /// Makes the repository, its plan, and one commit.
    pub(crate) fn new(workshop: &'w Workshop) -> Self {
        let repo = workshop.path("fw");
        for folder in ["src", "test"] {
            std::fs::create_dir_all(repo.join(folder)).unwrap();
        }
        for (file, text) in [
            ("src/start.c", START),
            ("src/ring.h", RING_H),
            ("src/ring.c", RING),
            ("test/test_ring.c", TEST),
            ("link.ld", LINK),
            ("Makefile", MAKEFILE),
            (".gitignore", "out/\n"),
        ] {
            std::fs::write(repo.join(file), text).unwrap();
        }
        workshop.write("plan.toml", PLAN);
        workshop.write("policy.toml", "version = 1\napprove_templates = false\n");
        let project = Self { workshop, repo };
        project.git(&["init", "--quiet"]);
        project.commit("base");
        project
    }

    /// Calls git, and returns what it printed.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.current_dir(&self.repo).args([
            "-c",
            "user.name=Test",
            "-c",
            "user.email=test@localhost",
        ]);
        git.args(["-c", "commit.gpgsign=false"]).args(args);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        let done = git.output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// Writes a task for agents; a script is what the agent `script` runs in its work tree.
    pub(crate) fn task(&self, agents: &str, script: Option<&str>) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let mut task = format!(
            "version = 1\ngoal = \"the ring refuses a ninth byte\"\nrepo = \"fw\"\n\
             board = \"mps2-an385\"\nplan = \"plan.toml\"\nagents = {agents}\n\
             [build]\ncommand = [\"make\"]\nartifact = \"out/app.elf\"\n\
             [limits]\niterations = 3\n[policy]\nfile = \"policy.toml\"\n"
        );
        if let Some(script) = script {
            let path = self.workshop.write("agent.sh", format!("#!/bin/sh\n{script}\n"));
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            task += &format!(
                "[agent.script]\ncommand = [{:?}, \"{{bundle}}\"]\ntimeout = \"2s\"\n",
                path.display().to_string()
            );
        }
        self.workshop.write("task.toml", task)
    }

    /// Checks that the checkout is as it was committed, and that no work tree is left.
    pub(crate) fn is_untouched(&self) {
        assert_eq!(self.git(&["status", "--porcelain"]), "");
        assert_eq!(std::fs::read_to_string(self.repo.join("src/ring.c")).unwrap(), RING);
        assert_eq!(self.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    }

    pub(crate) fn branches(&self) -> Vec<String> {
        let listed = self.git(&["for-each-ref", "--format=%(refname)", "refs/heads/jig"]);
        listed.lines().map(str::to_owned).collect()
    }
}
