import { map, message, optional, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";

export const imageSpec = message("runtime.v1.ImageSpec", {
  image: optional(1, string),
  annotations: optional(2, map(string)),
  userSpecifiedImage: optional(18, string),
  runtimeHandler: optional(19, string),
});
export type ImageSpec = Infer<typeof imageSpec>;
