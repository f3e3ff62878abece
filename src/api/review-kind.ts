/** Kinds that are created but not stored: reviews (SubjectAccessReview, TokenReview) and Binding. */
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

/** Whether objects of the kind are stored. Others are computed for each request. */
export function isPersisted(kind: Kind): boolean {
  return kind.storageName !== "";
}
