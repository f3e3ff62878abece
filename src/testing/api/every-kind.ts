import { builtinKinds, schemeOf } from "../../api/builtin.ts";
import { previewKinds } from "../../api/preview-kinds.ts";
import type { Scheme } from "../../api/scheme.ts";

/** A scheme of the built-in kinds in every version whose fields differ, served by default or not. */
export function everyKind(): Scheme {
  return schemeOf([...builtinKinds, ...previewKinds]);
}
