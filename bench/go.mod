module fenec/bench

go 1.26.0

require (
	fenec v0.0.0
	github.com/mattn/go-sqlite3 v1.14.32
	golang.org/x/sys v0.50.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/rs/zerolog v1.35.1 // indirect
	golang.org/x/text v0.44.0 // indirect
)

replace fenec => ../
