package command

import (
	"errors"

	"github.com/urfave/cli/v2"
)

func standbyCommand() *cli.Command {
	return &cli.Command{
		Name:  "standby",
		Usage: "Follow another node or router (not available in this version)",
		Description: `
A standby follows a node's tenants or a router's directory and can take over from
it. This version does not support replication.
`,
		SkipFlagParsing: true, // it fails with any flags
		Action: func(*cli.Context) error {
			return errors.New("standby is not available: this version does not support replication")
		},
	}
}
