import { invalidField } from "../../../schema/validation/field-error.ts";
import { key } from "../../../schema/value/field-path.ts";
import type { Strategy } from "../../kind.ts";
import { decodedBytes, textBytes, validateImmutable, validateKeys, validateSize } from "./data-validation.ts";
import type { ConfigMap } from "./schema.ts";

export const configMapStrategy: Strategy<ConfigMap> = {
  validate: (object) => [
    ...validateKeys(object.data, "data"),
    ...validateKeys(object.binaryData, "binaryData"),
    ...Object.keys(object.binaryData ?? {})
      .filter((name) => object.data?.[name] !== undefined)
      .map((name) => invalidField(key("data", name), name, "duplicate of key present in binaryData")),
    ...validateSize(textBytes(object.data) + decodedBytes(object.binaryData), ""),
  ],
  validateUpdate: (next, previous) => validateImmutable(next, previous, ["data", "binaryData"]),
};
