module vocabulary

go 1.19

require plugd v0.0.0

// Elsewhere: go mod edit -replace plugd=PATH/plugin-sdk/go
replace plugd => ../../plugin-sdk/go
