import { object, optional, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const nodeProxyOptions = object("core/v1.NodeProxyOptions", {
  ...typeMeta,
  path: optional(1, string),
});
export type NodeProxyOptions = Infer<typeof nodeProxyOptions>;
