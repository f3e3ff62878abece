import { createReviewKind } from "../../review-kind.ts";
import { type Binding, binding } from "./schema.ts";

/** Assigns a pod to a node. Clients create `pods/NAME/binding`; this resource, with the name in the body, is older. */
export const bindingKind = createReviewKind<Binding>({
  group: "",
  version: "v1",
  kind: "Binding",
  namespaced: true,
  schema: binding,
});
