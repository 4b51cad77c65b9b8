//! srun, in a Slurm of one machine that the test starts for itself.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use adapm_verify::silence::Silence;

use crate::harness::{Process, TOKEN, binary, clean, folder, lacks, pass, ring, skip, text};
use crate::launchers::is_one_run;

/// The three daemons and their files; ended when dropped.
struct Slurm {
    config: PathBuf,
    daemons: Vec<Child>,
}

impl Slurm {
    /// Starts everything, or returns why that cannot be done here.
    fn start(folder: &Path) -> Result<Self, String> {
        let munge = folder.join("munge");
        for name in ["munge", "state", "spool"] {
            fs::create_dir_all(folder.join(name)).map_err(|error| error.to_string())?;
        }
        fs::set_permissions(&munge, fs::Permissions::from_mode(0o700))
            .map_err(|error| error.to_string())?;
        let key = munge.join("key");
        // A secret of this test alone, which ends with it.
        fs::write(&key, TOKEN.repeat(2)).map_err(|error| error.to_string())?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))
            .map_err(|error| error.to_string())?;
        let socket = munge.join("socket");
        let host =
            Command::new("hostname").arg("-s").output().map_err(|error| error.to_string())?;
        let host = String::from_utf8_lossy(&host.stdout).trim().to_owned();
        let config = folder.join("slurm.conf");
        fs::write(&config, configuration(folder, &socket, &host))
            .map_err(|error| error.to_string())?;

        let mut slurm = Self { config, daemons: Vec::new() };
        let file = |name: &str| format!("--{name}={}", text(&munge.join(name)));
        let mut munged = Command::new("munged");
        munged.args(["--force", "--foreground", &format!("--key-file={}", text(&key))]);
        munged.args([
            &format!("--socket={}", text(&socket)),
            &file("pid-file"),
            &file("seed-file"),
            &file("log-file"),
        ]);
        slurm.daemon(&mut munged)?;
        slurm.wait("munged makes no socket", || socket.exists())?;
        for name in ["slurmctld", "slurmd"] {
            let config = slurm.config.clone();
            slurm.daemon(Command::new(name).args(["-D", "-f", text(&config)]))?;
        }
        let config = slurm.config.clone();
        slurm.wait("the node does not become idle", || {
            let sinfo =
                Command::new("sinfo").args(["-h", "-o", "%T"]).env("SLURM_CONF", &config).output();
            sinfo.is_ok_and(|output| output.stdout.starts_with(b"idle"))
        })?;
        Ok(slurm)
    }

    fn daemon(&mut self, command: &mut Command) -> Result<(), String> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let name = command.get_program().to_owned();
        self.daemons.push(command.spawn().map_err(|error| format!("{}: {error}", name.display()))?);
        Ok(())
    }

    fn wait(&mut self, otherwise: &str, is_there: impl Fn() -> bool) -> Result<(), String> {
        let mut silence = Silence::new();
        while !is_there() {
            let has_ended =
                self.daemons.iter_mut().any(|daemon| !matches!(daemon.try_wait(), Ok(None)));
            if has_ended || silence.is_too_long(()) {
                return Err(otherwise.to_owned());
            }
            pass(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let pid = rustix::process::Pid::from_child(daemon);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let deadline = Instant::now() + Duration::from_secs(10);
            while matches!(daemon.try_wait(), Ok(None)) && Instant::now() < deadline {
                pass(Duration::from_millis(20));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Returns a cluster of this machine alone, whose ports were free a moment ago.
fn configuration(folder: &Path, socket: &Path, host: &str) -> String {
    let ports: Vec<TcpListener> = (0..2)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("loopback has a free port"))
        .collect();
    let port = |at: usize| ports[at].local_addr().expect("it has one").port();
    let (folder, socket) = (text(folder), text(socket));
    format!(
        "ClusterName=test\nSlurmctldHost={host}\nSlurmUser=root\nSlurmdUser=root\n\
         AuthType=auth/munge\nAuthInfo=socket={socket}\nCredType=cred/munge\n\
         SlurmctldPort={}\nSlurmdPort={}\nSlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd.pid\n\
         StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool\n\
         SlurmctldLogFile={folder}/slurmctld.log\nSlurmdLogFile={folder}/slurmd.log\n\
         ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSchedulerType=sched/builtin\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nReturnToService=2\nMpiDefault=none\n\
         NodeName={host} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN\n\
         PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n",
        port(0),
        port(1)
    )
}

#[test]
fn srun_starts_nodes_that_train_together() {
    if let Some(reason) =
        lacks(&["munged", "slurmctld", "slurmd", "srun", "sinfo", "hostname"], true)
    {
        return skip("slurm", &reason);
    }
    let folder = folder("slurm");
    let slurm = match Slurm::start(&folder) {
        Ok(slurm) => slurm,
        Err(reason) => return skip("slurm", &reason),
    };
    let data = ring(&folder);
    let mut command = clean(Command::new("srun"));
    command.args(["-n3", "--overcommit"]).env("SLURM_CONF", &slurm.config);
    command.env("ADAPM_TOKEN", TOKEN).env("TMPDIR", &folder).arg(binary());
    command.args(["train", "kge", "--data", &data, "--json", "--no-eval", "--dim", "8"]);
    command.args(["--epochs", "300", "--workers", "1"]);
    is_one_run(&Process::start("srun", &mut command).end(), 3, 300);
}
