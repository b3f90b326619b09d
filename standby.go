package main

import (
	"errors"

	"github.com/urfave/cli/v2"
)

func standbyCommand() *cli.Command {
	return &cli.Command{
		Name:  "standby",
		Usage: "Follow another node or router (comes with a later version)",
		Description: `
A standby follows a node's tenants or a router's directory and can take over from
it. This version of fenec does not replicate yet.
`,
		SkipFlagParsing: true, // whatever flags it will have, the answer is the same
		Action: func(*cli.Context) error {
			return errors.New("standby comes with a later version: this one does not replicate yet")
		},
	}
}
