module plugd

go 1.19
