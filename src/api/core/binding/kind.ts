import { createReviewKind } from "../../review-kind.ts";
import { type Binding, binding } from "./schema.ts";

/** Puts a pod on a node. Clients write `pods/NAME/binding`; this, where the name stands in the body, is older. */
export const bindingKind = createReviewKind<Binding>({
  group: "",
  version: "v1",
  kind: "Binding",
  namespaced: true,
  schema: binding,
});
