import { dns1123Label } from "../../meta/validation/names.ts";
import { podSpecWarnings } from "../pod-spec/warnings.ts";
import type { Pod } from "./schema.ts";

export function podWarnings(object: Pod): readonly string[] {
  const name = dns1123Label(object.metadata?.name ?? "");
  const recommended =
    "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended";
  return [
    ...(name.length === 0 ? [] : [`metadata.name: ${recommended}: [${name.join(" ")}]`]),
    ...(object.spec === undefined ? [] : podSpecWarnings(object.spec, "spec", object.metadata, { template: false })),
  ];
}
