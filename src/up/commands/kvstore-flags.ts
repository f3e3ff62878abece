/** Every flag of `svc kvstore`, in the order of its help. */
import { storageFlags } from "../../apiserver/flags/storage.ts";
import type { CommandProgram } from "../../flags/commands.ts";
import { flag, section } from "../../flags/flag.ts";
import { bool, oneOf } from "../../flags/types/text.ts";
import { upFlags } from "../flags.ts";

export const kvstoreFlags = section("Store", {
  "data-dir": flag(upFlags["data-dir"].type, upFlags["data-dir"].default, "Data directory of svc up."),
  "kvstore-servers": flag(
    storageFlags["kvstore-servers"].type,
    storageFlags["kvstore-servers"].default,
    "Store of an API server that svc up did not start.",
    { defaultNote: "the store in --data-dir" },
  ),
  "kvstore-cafile": storageFlags["kvstore-cafile"],
  "kvstore-certfile": storageFlags["kvstore-certfile"],
  "kvstore-keyfile": storageFlags["kvstore-keyfile"],
  "kvstore-prefix": storageFlags["kvstore-prefix"],
  output: flag(oneOf("text", "json"), "text", "Output format.", { short: "o" }),
  help: flag(bool, false, "Print help.", { short: "h" }),
});

export const kvstoreProgram: CommandProgram<typeof kvstoreFlags> = {
  name: "svc kvstore",
  summary:
    "Shows what is in the store of an API server. A store on this machine can be read while its API server is stopped.",
  commands: [{ command: "encrypt-status", summary: "count the values by the key that encrypted them" }],
  flags: kvstoreFlags,
};
