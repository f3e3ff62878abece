/** Every flag of `svc token create`, in the order of its help. */
import type { CommandProgram } from "../../flags/commands.ts";
import { flag, section } from "../../flags/flag.ts";
import { duration } from "../../flags/types/duration.ts";
import { httpsUrl } from "../../flags/types/network.ts";
import { bool, file } from "../../flags/types/text.ts";
import { upFlags } from "../flags.ts";

export const tokenFlags = section("Token", {
  svcconfig: flag(file, `${upFlags["data-dir"].default}/admin.svcconfig`, "Connection file of an administrator."),
  server: flag(httpsUrl, "", "URL at which the machine reaches the API server.", {
    defaultNote: "the URL that the cluster publishes",
  }),
  ttl: flag(duration({ min: 1 }), 86_400_000, "How long the token can be used."),
  help: flag(bool, false, "Print help.", { short: "h" }),
});

export const tokenProgram: CommandProgram<typeof tokenFlags> = {
  name: "svc token",
  summary: "Creates a bootstrap token for a machine that is to join the cluster, and prints the command to run there.",
  commands: [{ command: "create", summary: "create a token" }],
  flags: tokenFlags,
};
