/** Finds the class that an annotation marks as the default. */
import type { ApiObject, Kind } from "../../../api/kind.ts";
import { type AdmissionRequest, metadataOf } from "../../chain/attributes.ts";
import type { ObjectReader } from "../../chain/plugin.ts";

/** The name of the newest default class; among several of the same second, the first by name. */
export async function findDefaultClass<T extends ApiObject>(
  kind: Kind<T>,
  annotations: readonly string[],
  reader: ObjectReader,
  request: AdmissionRequest,
): Promise<string | undefined> {
  const defaults = (await reader.list(kind, "", request)).map(metadataOf).filter((metadata) => {
    const values = metadata.annotations ?? {};
    return annotations.some((name) => values[name] === "true");
  });
  const [first] = defaults.sort((a, b) => {
    const [created, other] = [a.creationTimestamp ?? "", b.creationTimestamp ?? ""];
    if (created !== other) return created > other ? -1 : 1;
    return (a.name ?? "") < (b.name ?? "") ? -1 : 1;
  });
  return first?.name;
}
