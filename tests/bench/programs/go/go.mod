module bench

go 1.19

require plugd v0.0.0

replace plugd => ../../../../plugin-sdk/go
