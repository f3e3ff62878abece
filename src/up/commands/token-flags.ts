/** Every flag of `svc token create`, in the order of its help. */
import { flag, section } from "../../flags/flag.ts";
import type { Program } from "../../flags/program.ts";
import { duration } from "../../flags/types/duration.ts";
import { httpsUrl } from "../../flags/types/network.ts";
import { bool, file } from "../../flags/types/text.ts";

export const tokenFlags = section("Invitation", {
  svcconfig: flag(file, "/var/lib/svc/admin.svcconfig", "Connection file of an administrator."),
  server: flag(httpsUrl, "", "Where the machine reaches the API server.", {
    defaultNote: "what the cluster says of itself",
  }),
  ttl: flag(duration({ min: 1 }), 86_400_000, "How long the token can be used."),
  help: flag(bool, false, "Print help.", { short: "h" }),
});

export const tokenProgram: Program<typeof tokenFlags> = {
  name: "svc token create",
  summary: "Makes a token with which a machine can join the cluster, and prints the command to run there.",
  flags: tokenFlags,
};
