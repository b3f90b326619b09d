package command

import (
	"github.com/urfave/cli/v2"
)

const standbyHelp = `
A standby holds copies of another node's tenants and can take over from it: it is a
node whose new tenants follow the node at --replica-of. Record it in the router with
{"standby": "<node>"}, and the router has it follow every tenant of that node:

  fenec standby --dir ./data2 --http 127.0.0.1:8082 --admin-token s3cret2 \
    --replication-token shared --replica-of http://127.0.0.1:8081

It has the flags of "fenec node".
`

// standbyCommand is `fenec standby`: a node whose role is in its name. Which role a tenant has is in the tenant's files, so the
// command adds nothing but that --replica-of is required.
func standbyCommand() *cli.Command {
	node := nodeCommand()
	return &cli.Command{
		Name:        "standby",
		Usage:       "Follow another node, ready to take over",
		Description: standbyHelp,
		Flags:       node.Flags,
		Action: func(c *cli.Context) error {
			if c.String("replica-of") == "" {
				return usagef("a standby needs --replica-of, the address of the node that it follows")
			}
			return runNode(c)
		},
	}
}
