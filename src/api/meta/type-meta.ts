import { optional, string } from "../../schema/define.ts";

/** `kind` and `apiVersion`. Protobuf carries them in its envelope instead. */
export const typeMeta = {
  kind: optional(0, string),
  apiVersion: optional(0, string),
} as const;
