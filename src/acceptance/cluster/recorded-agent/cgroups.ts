/** Reads a pod's cgroups in the format of the recordings: cgroup v1, a directory for each controller. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Json } from "./cases.ts";

const hierarchy = "/sys/fs/cgroup";
const tiers = ["", "besteffort", "burstable"];

/** `{pod: {path, "cpu.shares": …}, <container>: {…}}`; of running containers, given by name with their ids. */
export function readCgroups(uid: string, containers: ReadonlyMap<string, string>, recorded: Json): Json {
  const paths = tiers.map((tier) => join("/kubepods", tier, `pod${uid}`));
  const path = paths.find((each) => existsSync(join(hierarchy, "cpu", each)));
  if (path === undefined) return {};
  const names = Object.keys(recorded).filter((name) => name !== "pod");
  const wanted = Object.keys((recorded.pod ?? {}) as Json).filter((name) => name !== "path");
  const files = (at: string): Json => Object.fromEntries(wanted.map((name) => [name, content(at, name)]));
  return {
    pod: { path, ...files(path) },
    ...Object.fromEntries(names.map((name) => [name, files(join(path, containers.get(name) ?? "absent"))])),
  };
}

/** `cpu.shares` is a file of the controller `cpu`. */
function content(path: string, name: string): string {
  const file = join(hierarchy, name.split(".")[0] ?? "", path, name);
  return existsSync(file) ? readFileSync(file, "utf8").trim() : "absent";
}

/** A line for each value that differs from the recorded one. */
export function cgroupDifferences(recorded: Json, found: Json): readonly string[] {
  return Object.entries(recorded as Readonly<Record<string, Json>>).flatMap(([of, files]) =>
    Object.entries(files).flatMap(([name, value]) => {
      const got = ((found[of] ?? {}) as Json)[name];
      return got === value ? [] : [`cgroup of ${of}: ${name} ${String(value)}, not ${String(got)}`];
    }),
  );
}
