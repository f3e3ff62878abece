/** Kinds that are questions or orders: created, answered or done, and not kept. */
import type { ObjectSchema } from "../schema/schema.ts";
import { ageColumn, nameColumn } from "./columns/columns.ts";
import type { ApiObject, Kind, Strategy } from "./kind.ts";

interface ReviewDefinition<T extends ApiObject> extends Pick<Kind<T>, "group" | "version" | "kind" | "namespaced"> {
  readonly schema: ObjectSchema & { readonly name: string };
  readonly validate?: Strategy<T>["validate"];
}

export function createReviewKind<T extends ApiObject>({ validate, ...review }: ReviewDefinition<T>): Kind<T> {
  const singular = review.kind.toLowerCase();
  return {
    ...review,
    listKind: `${review.kind}List`,
    plural: `${singular}s`,
    singular,
    shortNames: [],
    categories: [],
    verbs: ["create"],
    subresources: [],
    storageName: "",
    columns: [nameColumn, ageColumn],
    selectableFields: {},
    strategy: validate === undefined ? {} : { validate },
  };
}

/** Whether objects of the kind are kept. The others are made when they are asked for. */
export function isPersisted(kind: Kind): boolean {
  return kind.storageName !== "";
}
