import type { Strategy } from "../../kind.ts";
import { decodedBytes, textBytes, validateImmutable, validateKeys, validateSize } from "./data-validation.ts";
import type { ConfigMap } from "./schema.ts";

export const configMapStrategy: Strategy<ConfigMap> = {
  validate: (object) => [
    ...validateKeys(object.data, "data", object.binaryData),
    ...validateKeys(object.binaryData, "binaryData"),
    ...validateSize(textBytes(object.data) + decodedBytes(object.binaryData), ""),
  ],
  validateUpdate: (next, previous) => validateImmutable(next, previous, ["data", "binaryData"]),
};
