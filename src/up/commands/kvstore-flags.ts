/** Every flag of `svc kvstore`, in the order of its help. */
import { storageFlags } from "../../apiserver/flags/storage.ts";
import type { CommandProgram } from "../../flags/commands.ts";
import { flag, section } from "../../flags/flag.ts";
import { storeServers } from "../../flags/types/network.ts";
import { int } from "../../flags/types/number.ts";
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
  from: flag(storeServers, [], "Store that migrate reads."),
  to: flag(storeServers, [], "Store that migrate writes; it must be empty."),
  "bump-revision": flag(
    int({ min: -1, max: 2 ** 40 }),
    -1,
    "By how much the revision of a restored, repaired or migrated store is higher than the one that was read.",
    { defaultNote: "0 for migrate, 1000000 for restore and repair" },
  ),
  output: flag(oneOf("text", "json"), "text", "Output format.", { short: "o" }),
  help: flag(bool, false, "Print help.", { short: "h" }),
});

export const kvstoreProgram: CommandProgram<typeof kvstoreFlags> = {
  name: "svc kvstore",
  summary:
    "Works on the store of an API server. check and snapshot run beside the API server; for the other commands on a " +
    "store on this machine it must be stopped.",
  commands: [
    { command: "check", summary: "verify every record" },
    { command: "snapshot <file>", summary: "write all objects of one revision to a new file" },
    { command: "restore <file>", summary: "write the objects of a snapshot to an empty store" },
    { command: "compact", summary: "delete the history and give back its disk space" },
    { command: "repair", summary: "keep what is whole of a damaged store, and a copy of all files" },
    { command: "migrate", summary: "copy all objects from one store to another, empty one" },
    { command: "encrypt-status", summary: "count the values by the key that encrypted them" },
  ],
  flags: kvstoreFlags,
};
