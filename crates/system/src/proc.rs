//! Files of `/proc` (proc(5)): how they are found and read. What is missing or malformed in one is `None`.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use nix::unistd::{SysconfVar, sysconf};

/// Length of most files, in bytes, at most. They do not tell it, and would be read in ever longer parts.
const MOST: usize = 4 << 10;

/// Reads a file. Names of programs are any bytes: those that are not UTF-8 are replaced.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    let mut bytes = Vec::with_capacity(MOST);
    fs::File::open(path).ok()?.read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the folder of this process.
pub(crate) fn own() -> &'static Path {
    Path::new("/proc/self")
}

/// Returns the folder of a process.
pub(crate) fn process(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// Returns the numbers of all processes that can be seen.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the folders of the living threads of a process.
///
/// # Errors
/// Fails if there is no such process ([`io::ErrorKind::NotFound`]), or this user may not see its threads.
pub(crate) fn threads(pid: u32) -> io::Result<Vec<PathBuf>> {
    let folder = process(pid);
    let entries = fs::read_dir(folder.join("task")).map_err(|error| {
        let folder = folder.display();
        let text = match error.kind() {
            io::ErrorKind::NotFound => format!("File not found: {folder}"),
            io::ErrorKind::PermissionDenied => format!("Permission Denied: {folder}"),
            _ => format!("Unexpected IO error({folder}): {error}"),
        };
        io::Error::new(error.kind(), text)
    })?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

/// Returns the children that a thread has started, from its folder.
pub(crate) fn children(thread: &Path) -> Vec<u32> {
    let text = read(thread.join("children")).unwrap_or_default();
    let pids = text.split_ascii_whitespace().map(str::parse);
    pids.filter_map(Result::ok).collect()
}

/// The file `stat` of a process. Times are in clock ticks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Name of the program, of which the kernel keeps 15 bytes.
    pub(crate) name: String,
    /// Flags of the kernel (`PF_*` in `include/linux/sched.h`).
    pub(crate) flags: u32,
    /// CPU time of all its threads.
    pub(crate) time: u64,
    /// CPU time of its children that have ended and been waited for.
    pub(crate) children_time: u64,
    /// Number of its threads.
    pub(crate) threads: u64,
    /// When it started, since the machine did.
    pub(crate) start: u64,
    /// The CPU that it was last seen on.
    pub(crate) cpu: Option<usize>,
}

impl Stat {
    /// Reads the file in the folder of a process.
    pub(crate) fn read(process: &Path) -> Option<Self> {
        Self::parse(&read(process.join("stat"))?)
    }

    fn parse(text: &str) -> Option<Self> {
        // A name may have spaces and parentheses. What follows has none.
        let (start, rest) = text.rsplit_once(')')?;
        let (_, name) = start.split_once('(')?;
        let rest: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            name: name.to_owned(),
            flags: field(&rest, 9)?,
            time: field::<u64>(&rest, 14)?.saturating_add(field(&rest, 15)?),
            children_time: field::<u64>(&rest, 16)?.saturating_add(field(&rest, 17)?),
            threads: field(&rest, 20)?,
            start: field(&rest, 22)?,
            cpu: field(&rest, 39),
        })
    }
}

/// Returns a field that has this number in proc_pid_stat(5), of those that follow the name, which is the second.
fn field<T: FromStr>(rest: &[&str], number: usize) -> Option<T> {
    rest.get(number - 3)?.parse().ok()
}

/// Returns the resident memory of a process, in bytes.
pub(crate) fn resident(process: &Path) -> Option<u64> {
    let pages = resident_pages(&read(process.join("statm"))?)?;
    pages.checked_mul(setting(SysconfVar::PAGE_SIZE, 4096))
}

fn resident_pages(statm: &str) -> Option<u64> {
    statm.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Returns the times for which a thread ran, and for which it was ready but another one ran on its CPU
/// (`Documentation/scheduler/sched-stats.rst` of Linux).
pub(crate) fn run_and_delay(thread: &Path) -> Option<[Duration; 2]> {
    parse_schedstat(&read(thread.join("schedstat"))?)
}

fn parse_schedstat(text: &str) -> Option<[Duration; 2]> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    let [run, delay] = [numbers.next()?.ok()?, numbers.next()?.ok()?];
    Some([run, delay].map(Duration::from_nanos))
}

/// Returns the value on the line `name: value` of files such as `status` and `meminfo`.
pub(crate) fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut values = text.lines().filter_map(|line| line.split_once(':'));
    values.find_map(|(own, value)| (own == name).then_some(value.trim()))
}

/// Returns the bytes of a value such as `1692 kB`, whose unit is 1024 bytes.
pub(crate) fn bytes(value: &str) -> Option<u64> {
    let kibibytes: u64 = value.strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Returns the times on a line `cpu5 user nice system idle iowait irq softirq steal guest guest_nice` of `/proc/stat`
/// (proc_stat(5)), with the number of the CPU, which is empty for the sum of all.
pub(crate) fn cpu_times(line: &str) -> Option<(&str, Vec<Duration>)> {
    let (number, ticks) = line.strip_prefix("cpu")?.split_once(' ')?;
    let ticks = ticks.split_ascii_whitespace().map(str::parse);
    let ticks = ticks.collect::<Result<Vec<u64>, _>>().ok()?;
    let second = ticks_per_second();
    let time = |ticks: u64| Duration::from_millis(ticks.saturating_mul(1000) / second);
    Some((number, ticks.into_iter().map(time).collect()))
}

/// Returns the clock ticks of a second, which is the unit of times in `stat`.
pub(crate) fn ticks_per_second() -> u64 {
    setting(SysconfVar::CLK_TCK, 100)
}

/// Returns a setting of the system; the `usual` one where it tells none.
fn setting(variable: SysconfVar, usual: u64) -> u64 {
    let known = sysconf(variable).ok().flatten();
    known.map_or(usual, i64::unsigned_abs).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line with fields of which no two are equal.
    const STAT: &str = "4711 (a b) c) S 1 4709 4708 34816 4710 4194560 118 119 12 13 700 50 30 4 20 -5 6 0 \
                        1459752 3133440 389 18446744073709551615 94744123752448 94744123772329 140724212968784 \
                        101 102 103 104 105 106 107 108 109 17 3 110 111 112 113 114\n";

    #[test]
    fn a_name_may_have_spaces_and_parentheses() {
        let expected = Stat {
            name: "a b) c".to_owned(),
            flags: 4_194_560,
            time: 750,
            children_time: 34,
            threads: 6,
            start: 1_459_752,
            cpu: Some(3),
        };
        assert_eq!(Stat::parse(STAT), Some(expected));
        for name in ["(sd-pam)", "", "((", "))", ") R 1 (", "k\u{fffd}", "a\nb"] {
            let stat = Stat::parse(&STAT.replace("a b) c", name)).unwrap();
            assert_eq!((stat.name.as_str(), stat.threads), (name, 6));
        }
    }

    #[test]
    fn a_line_that_is_cut_or_no_line_of_a_process_has_no_counters() {
        // Without the last field that is needed, and every one before it.
        let (needed, _) = STAT.split_once(" 1459752").unwrap();
        for end in 0..=needed.len() {
            assert_eq!(Stat::parse(&needed[..end]), None, "{end}");
        }
        // Kernels before 2.2 do not tell the CPU.
        let (old, _) = STAT.split_once(" 17 3 ").unwrap();
        assert_eq!(Stat::parse(old).unwrap().cpu, None);
        let huge = "99999999999999999999";
        assert_eq!(
            Stat::parse(&STAT.replace(" 700 ", &format!(" {huge} "))),
            None
        );
        let most = Stat::parse(&STAT.replace(" 700 ", " 18446744073709551615 "));
        assert_eq!(most.unwrap().time, u64::MAX);
        for wrong in ["", "4711", "4711 )(", "4711 (a", "4711 (a) S x"] {
            assert_eq!(Stat::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn resident_pages_are_the_second_number() {
        assert_eq!(resident_pages("765 410 381 5 0 123 0\n"), Some(410));
        for wrong in [
            "",
            "765",
            "765 \n",
            "765 -1 381",
            "765 99999999999999999999",
        ] {
            assert_eq!(resident_pages(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_thread_runs_and_then_waits() {
        let expected = [1_820_013, 4711].map(Duration::from_nanos);
        assert_eq!(parse_schedstat("1820013 4711 9\n"), Some(expected));
        for wrong in ["", "1820013", "x 4711 9", "1820013 -1 9"] {
            assert_eq!(parse_schedstat(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn values_stand_behind_their_names() {
        let status = "Name:\tVmHWM: 1 kB\nVmPeak:\t    3060 kB\nVmHWM:\t    1692 kB\nThreads:\t1\n\
                      Cpus_allowed_list:\t0-1,4\nnonvoluntary_ctxt_switches:\t7\n\
                      voluntary_ctxt_switches:\t150\n";
        assert_eq!(value(status, "VmHWM").and_then(bytes), Some(1692 * 1024));
        assert_eq!(value(status, "voluntary_ctxt_switches"), Some("150"));
        assert_eq!(value(status, "Cpus_allowed_list"), Some("0-1,4"));
        assert_eq!(value(status, "Cpus_allowed"), None);
        // A thread of the kernel has no memory.
        assert_eq!(value("Name:\tkthreadd\n", "VmHWM"), None);
        assert_eq!(value("VmHWM", "VmHWM"), None);
    }

    #[test]
    fn a_kilobyte_has_1024_bytes_and_no_other_unit_is_read() {
        assert_eq!(bytes("24684084 kB"), Some(25_276_502_016));
        for wrong in ["", "12", "12 MB", "kB", "-1 kB", "18446744073709551615 kB"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_of_cpus_are_in_ticks() {
        let second = ticks_per_second();
        let line = format!("cpu11 {} 0 18446744073709551615", 3 * second);
        let (number, times) = cpu_times(&line).unwrap();
        assert_eq!((number, times.len()), ("11", 3));
        assert_eq!(times[..2], [Duration::from_secs(3), Duration::ZERO]);
        assert_eq!(times[2], Duration::from_millis(u64::MAX / second));
        assert_eq!(cpu_times("cpu  7 8").unwrap().0, "");
        for wrong in ["", "cpu", "intr 5 6", "cpu0 x", "cpu0 1 -1"] {
            assert_eq!(cpu_times(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_the_system_tells_of_this_process_is_read() {
        let stat = Stat::read(own()).unwrap();
        assert!(stat.threads > 0 && stat.start > 0 && stat.cpu.is_some());
        assert!(resident(own()) > Some(100_000));
        // A file whose bytes are not UTF-8, as names may be.
        assert!(read(own().join("auxv")).is_some_and(|text| text.contains('\u{fffd}')));
        assert!(pids().any(|pid| pid == std::process::id()));
        let threads = threads(std::process::id()).unwrap();
        let [run, _] = run_and_delay(&threads[0]).unwrap();
        assert!(run > Duration::ZERO);
    }

    #[test]
    fn a_process_that_has_gone_is_told_by_the_kind_of_the_error() {
        let gone = u32::MAX / 4;
        let error = threads(gone).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(error.to_string(), format!("File not found: /proc/{gone}"));
        assert_eq!(Stat::read(&process(gone)), None);
    }
}
