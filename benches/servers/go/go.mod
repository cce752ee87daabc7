module netping-echo

go 1.24
