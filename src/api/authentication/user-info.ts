import { list, map, named, object, optional, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";

export const userInfo = object("authentication/v1.UserInfo", {
  username: optional(1, string),
  uid: optional(2, string),
  groups: optional(3, list(string)),
  extra: optional(4, map(named("v1.ExtraValue", list(string)))),
});
export type UserInfo = Infer<typeof userInfo>;
