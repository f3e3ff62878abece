/** Every flag of `svc webhooks`, in the order of its help. */
import { storageFlags } from "../../apiserver/flags/storage.ts";
import type { CommandProgram } from "../../flags/commands.ts";
import { flag, section } from "../../flags/flag.ts";
import { strings } from "../../flags/types/list.ts";
import { bool, pattern } from "../../flags/types/text.ts";
import { upFlags } from "../flags.ts";

const levelUrl = pattern(
  "level:///PATH",
  (value) => value === "" || /^level:\/\/./.test(value),
  "level:///var/lib/svc/kvstore",
);

export const webhooksFlags = section("Webhooks", {
  webhook: flag(strings(), [], "Webhooks of the configuration to suspend.", { defaultNote: "all" }),
  "data-dir": flag(upFlags["data-dir"].type, upFlags["data-dir"].default, "Data directory of svc up."),
  "kvstore-servers": flag(levelUrl, "", "Store of an API server that svc up did not start.", {
    defaultNote: "the store in --data-dir",
  }),
  "kvstore-prefix": storageFlags["kvstore-prefix"],
  help: flag(bool, false, "Print help.", { short: "h" }),
});

export const webhooksProgram: CommandProgram<typeof webhooksFlags> = {
  name: "svc webhooks",
  summary:
    "Lists the configurations of admission webhooks, or suspends one: until it is resumed, requests pass as if its " +
    "webhooks did not exist. The API server must be stopped.",
  commands: [
    { command: "list", summary: "list all configurations and their state" },
    { command: "suspend <name>", summary: "stop calling the webhooks of a configuration" },
    { command: "resume <name>", summary: "call them again" },
  ],
  flags: webhooksFlags,
};
