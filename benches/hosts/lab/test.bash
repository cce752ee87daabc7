# Sourced by lab: `lab test`. Prints a line for each thing shown, and returns 1 if one is not so.
# shellcheck shell=bash disable=SC2154 # variables of lab

failed=0

lab_test() {
    local long=no
    on_time=shown
    while [[ $# -gt 0 ]]; do
        case $1 in
            --long) long=yes ;;
            --ci) on_time=told ;;
            *) echo "unknown: $1" >&2 && return 2 ;;
        esac
        shift
    done
    trap lab_down EXIT
    lab_up
    results=$dir/results
    test_campaign
    test_ipv6
    test_second_run
    test_failures
    [[ $long = no ]] || test_proxies
    [[ $long = no ]] || test_many_clients 8
    [[ $long = no ]] || test_many_clients 16
    [[ $long = no ]] || test_search
    return $failed
}

# shown WHAT COMMAND...: "ok" if the command succeeds; its output either way. The command runs without errexit: what it does
# is joined with &&.
shown() {
    local what=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "ok $what${output:+: $output}"
    else
        echo "FAILED $what${output:+: $output}"
        failed=1
    fi
}

# told WHAT COMMAND...: the same, but a failure is none of the test.
told() {
    local before=$failed
    shown "$@"
    failed=$before
}

# play LOG ARGUMENTS...
play() {
    local log=$dir/$1
    shift
    lab_play "$@" -e results_folder="$results" >"$log" 2>&1 || { tail -n 25 "$log" && return 1; }
}

checks() { python3 "$here/checks.py" "$@"; }

test_campaign() {
    local began=$SECONDS
    ip netns exec "$lab.controller" python3 "$here/checks.py" gateway 9091 "$dir/pushed" 2>"$dir/gateway.log" &
    disown
    shown "the play, from nothing to the page of the campaign" play campaign.log campaign.yml -e @lab/campaign.yml \
        -e pushgateway=http://198.18.0.2:9091
    echo "   in $((SECONDS - began)) s"
    local folder
    folder=$(echo "$results"/*)
    read_results "$folder"
    $on_time "$(checks name delay)" checks delay "$folder" $((2 * delay_ms))
    shown "$(checks name pushed)" checks pushed "$dir/pushed"
    shown "$(checks name differences)" checks differences "$folder"
    shown "no process is left" nothing_runs
}

read_results() {
    local check
    for check in page counts quantiles; do
        shown "$(checks name $check)" checks $check "$1"
    done
    $on_time "$(checks name lag)" checks lag "$1"
}

test_ipv6() {
    rm -rf "$results"
    shown "by IPv6, across zones, in two rounds" play ipv6.log campaign.yml --skip-tags binaries,check \
        -e '{"address": "{{ ipv6 }}", "listen": "[::]", "campaign": [{"scenario": "scenarios/smoke.toml", "servers": ["far"]}],
            "campaign_rounds": 2, "campaign_folder": "'"$results"'/two rounds"}'
    shown "   the page has both" two_rounds
    rm -rf "$results"
}

two_rounds() {
    local folder
    folder=$(echo "$results"/*)
    [[ -f $(echo "$folder"/smoke--*--far--2/run.html) ]] &&
        grep -q 'title="[^"]*: p99 .*title="[^"]*: p99 ' "$folder/index.html" &&
        ! grep http-equiv "$folder/index.html"
}

test_second_run() {
    shown "a second run changes nothing" second_run
    shown "--check works" play check.log site.yml -e scenario=scenarios/smoke.toml --check
    shown "--tags servers starts each once, for two clients" servers_alone
    shown "tuned.yml sets and restores" tuned
    shown "the hosts are left clean" cleaned
}

second_run() {
    play second.log site.yml -e scenario=scenarios/smoke.toml --tags binaries,check &&
        ! grep -E 'changed=[1-9]' "$dir/second.log"
}

servers_alone() {
    play servers.log site.yml -e scenario=scenarios/smoke-alone.toml -e '{"servers": ["server"]}' --tags servers &&
        ! nothing_runs >/dev/null &&
        play stop.log site.yml --tags stop &&
        nothing_runs
}

cleaned() {
    local host left
    play clean.log site.yml -e scenario=scenarios/smoke.toml --tags clean || return
    for host in server client-1 client-2; do
        left=$(lab_ssh $host "ls --ignore=ansible $dir/$host.work") || return
        [[ -z $left ]] || { echo "$host: $left" && return 1; }
    done
    play binaries.log site.yml -e scenario=scenarios/smoke.toml --tags binaries
}

tuned() {
    local before
    before=$(lab_ssh server sysctl net.ipv4.ip_local_port_range) &&
        play tuned.log tuned.yml &&
        [[ $(lab_ssh server sysctl -n net.ipv4.ip_local_port_range) = 1024*65535 ]] &&
        play tuned-again.log tuned.yml &&
        ! grep -E 'changed=[1-9]' "$dir/tuned-again.log" &&
        play restored.log tuned.yml -e tuned_state=restored &&
        [[ $(lab_ssh server sysctl net.ipv4.ip_local_port_range) = "$before" ]]
}

test_failures() {
    local a_minute='{"scenario_variables": {"duration": "60s"}}'
    shown "failure: no campaign" fails "nothing to measure" campaign.yml
    shown "failure: two runs of one name" fails "several runs are called" campaign.yml \
        -e '{"campaign": [{"scenario": "scenarios/smoke.toml"}, {"scenario": "scenarios/smoke.toml"}]}'
    mkdir -p "$results/left/failing--client-1+client-2--server.unfinished"
    shown "failure: a run that is there already" fails "unfinished is there" campaign.yml -e @lab/failing.yml \
        -e campaign_folder="$results/left"
    failure "lead time too short" "client-[12]: Wait for netping: .*later" : -e lead_time=0
    failure "a client that cannot connect" "client-2: Wait until it is ready: .*cannot connect" : \
        -e '{"scenario_variables": {"server": "{{ \"127.0.0.9\" if inventory_hostname == \"client-2\" else \"198.18.0.10\" }}"}}'
    failure "a client's clock 10 ms ahead" "client-2: Compare clocks: .*10ms" : \
        -e '{"client_environment": "{{ {\"NETPING_TEST_CLOCK_OFFSET\": \"10ms\"} if inventory_hostname == \"client-2\" else {} }}"}'
    failure "a client that is killed before it is ready" "client-2: Wait until it is ready: .*ended by signal 9" kill_client client-2 \
        -e '{"scenario_variables": {"server": "{{ \"198.18.0.99\" if inventory_hostname == \"client-2\" else \"198.18.0.10\" }}"}}'
    failure "a server that dies" "server: tokio is not running" in_mid_run kill_in server netping-server-
    failure "a client's disk is full" "client-2: Wait for netping: no space left" in_mid_run fill_disk client-2
    lab_ssh client-2 rm "$dir/client-2.work/filler"
    # Under systemd, where there is one.
    failure "a client that is killed" "client-1: Wait for netping: .*ended by signal (9|KILL)" in_mid_run kill_client client-1 \
        -e '{"accepted_exit_codes": [0, 1]}'
    failure "a result that is partial" "client-1: No client may have been interrupted: failing.json" in_mid_run kill_client client-1 \
        -e '{"accepted_exit_codes": [0, 137], "campaign": [{"scenario": "lab/failing.toml", "clients": ["client-1"], "servers": ["server"]}]}'
    local short=(-e run_limit=8 -e ready_limit=8)
    failure "a client past its deadline" "client-[12]: Wait for netping: ended at its deadline" : \
        -e run_limit=2 -e ready_limit=8 -e "$a_minute"
    failure "the controller is killed" "TASK .clients" in_mid_run kill_in controller ansible "${short[@]}" -e "$a_minute"
    failure "the network to a client is cut" "client-2: cannot be reached" in_mid_run link client-2 down "${short[@]}" -e "$a_minute"
    link client-2 up
    failure "a client's sshd dies" "client-2: cannot be reached" in_mid_run kill_in client-2 sshd "${short[@]}" -e "$a_minute"
    lab_up
    play binaries.log site.yml --tags binaries
    lab_ssh client-2 "echo >> $dir/client-2.work/bin/netping"
    failure "a client of another version" "client-2 has netping" :
}

# failure WHAT PATTERN HOOK... [-e ...]: the play fails and says so with PATTERN if HOOK happens; nothing merged and no
# process is left.
failure() {
    local what=$1 pattern=$2 hook=()
    shift 2
    while [[ $# -gt 0 && $1 != -e ]]; do hook+=("$1") && shift; done
    rm -rf "$results"
    "${hook[@]}" >/dev/null 2>&1 &
    local waiting=$!
    shown "failure: $what" fails "$pattern" campaign.yml --skip-tags binaries -e @lab/failing.yml "$@"
    kill $waiting 2>/dev/null || true
    wait $waiting 2>/dev/null || true
    shown "   nothing merged" nothing_merged
    shown "   no process is left 60 s later" no_process_in_60_s
}

fails() {
    local pattern=$1
    shift
    ! play failure.log "$@" >/dev/null || { echo "the play succeeded" && return 1; }
    # The lines of a message, as one.
    grep -E -m 1 -o "$pattern.*" <(sed -z 's/\n        / /g' "$dir/failure.log") || { tail -n 25 "$dir/failure.log" && return 1; }
}

nothing_merged() { [[ -z $(find "$results" -mindepth 3 -maxdepth 3 -name '*.json' 2>/dev/null) ]]; }

nothing_runs() {
    local name pid
    for name in $(namespaces); do
        for pid in $(ip netns pids "$name"); do
            case $(cat "/proc/$pid/comm" 2>/dev/null) in
                netping* | timeout) echo "$name: $(tr '\0' ' ' <"/proc/$pid/cmdline")" && return 1 ;;
            esac
        done
    done
}

no_process_in_60_s() {
    local second
    for second in {1..60}; do
        nothing_runs >/dev/null && return 0
        sleep 1
    done
    nothing_runs
}

in_mid_run() { until_served && "$@"; }

# Returns when the server has served the load for a while.
until_served() {
    local tries
    for tries in {1..600}; do
        ip netns exec "$lab.controller" python3 "$here/checks.py" served http://198.18.0.10:9004/metrics 100 && return 0
        sleep 0.1
    done
    return 1
}

# kill_in HOST PROGRAM: all its processes there.
kill_in() {
    local pid
    for pid in $(ip netns pids "$lab.$1"); do
        [[ $(cat "/proc/$pid/comm" 2>/dev/null) != "$2"* ]] || kill -KILL "$pid"
    done
}

# kill_client HOST: as soon as there is one.
kill_client() {
    local tries pid
    for tries in {1..3000}; do
        for pid in $(ip netns pids "$lab.$1"); do
            case $(tr '\0' ' ' <"/proc/$pid/cmdline") in
                *bin/netping\ run*) [[ $(cat "/proc/$pid/comm") != netping ]] || { kill -KILL "$pid" && return; } ;;
            esac
        done 2>/dev/null
        sleep 0.02
    done
}

link() { ip -n "$lab.switch" link set "$1" "$2"; }

fill_disk() { lab_ssh "$1" "head -c 1G /dev/zero >$dir/$1.work/filler"; }

test_proxies() {
    lab_up
    rm -rf "$results"
    # The hosts have this machine's programs, and no network to install others from.
    shown "the packages of the proxies" dpkg-query --show haproxy libnginx-mod-stream
    shown "HAProxy, nginx and netping-proxy" play proxies.log campaign.yml \
        -e '{"install_packages": true, "accepted_exit_codes": [0, 1], "scenario_variables": {"rate": "1k", "new_connections": "500", "duration": "1s"},
             "campaign": [{"scenario": "scenarios/proxies.toml", "clients": ["client-1"], "servers": ["server"]}]}'
}

test_many_clients() {
    local clients=$1 began
    lab_up --clients "$clients"
    rm -rf "$results"
    began=$SECONDS
    shown "$clients clients, told one after another" play many.log campaign.yml -e '{"campaign": [{"scenario": "scenarios/smoke.toml", "servers": ["server"]}]}' \
        --forks 1
    echo "   in $((SECONDS - began)) s"
    read_results "$(echo "$results"/*)"
}

test_search() {
    lab_up --clients 4
    rm -rf "$results"
    shown "4 clients search for the highest rate" search
    rm -rf "$results"
    shown "4 clients compare two servers" compared
}

# The server's delay and the callers of all clients limit the rate, whatever the machine: 256 in each 20 ms. Of the median,
# since the controller's work, on the same cores, makes some requests late.
search() {
    local next windows=() window=100
    while next=$("$binaries/netping" next --find 'p50<50ms' -d 2s --allow all "${windows[@]}") && [[ $next = --rate* ]]; do
        play search.log site.yml -e scenario=scenarios/rate.toml -e campaign_folder="$results/$((++window))" \
            -e '{"server_programs": {"tokio": {"port": 8004, "command": "netping-server-tokio --listen [::]:8004 --delay 20ms"}}}' \
            -e '{"servers": ["server"], "scenario_variables": {"rate": "'"${next#--rate }"'", "duration": "2s"},
                 "merge_flags": "--allow all", "accepted_exit_codes": [0, 1]}' || return
        windows=("$results"/*/*/rate.json)
    done
    echo "$next, after ${#windows[@]} windows"
    [[ $next = "the highest rate that keeps"* ]]
}

compared() {
    play compared.log site.yml -e scenario=lab/compared.toml -e '{"servers": ["server"], "merge_flags": "--allow all"}' &&
        "$binaries/netping" report "$results"/*/*/compared.json | grep -E -m 1 '^req/s .*(difference|better|worse|claim)'
}
