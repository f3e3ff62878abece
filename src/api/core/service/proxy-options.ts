import { object, optional, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const serviceProxyOptions = object("core/v1.ServiceProxyOptions", {
  ...typeMeta,
  path: optional(1, string),
});
export type ServiceProxyOptions = Infer<typeof serviceProxyOptions>;
