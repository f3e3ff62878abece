import type { Attributes } from "../user.ts";

/** `User "x" cannot list resource "pods" in API group "" in the namespace "default"`, as Kubernetes says it. */
export declare function refusal(attributes: Attributes): string;
