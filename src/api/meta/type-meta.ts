import { optional, string } from "../../schema/define.ts";

/** The two members that name a kind. They have no protobuf form: the envelope carries them. */
export const typeMeta = {
  kind: optional(0, string),
  apiVersion: optional(0, string),
} as const;
