/** The columns that most kinds share. */

import type { ApiObject, Column } from "../kind.ts";
import { CREATED_DESCRIPTION, NAME_DESCRIPTION } from "./descriptions.ts";
import { formatAge } from "./human-duration.ts";

export const nameColumn: Column<ApiObject> = {
  name: "Name",
  type: "string",
  format: "name",
  priority: 0,
  description: NAME_DESCRIPTION,
  cell: (object) => object.metadata?.name ?? "",
};

export const ageColumn: Column<ApiObject> = {
  name: "Age",
  type: "string",
  priority: 0,
  description: CREATED_DESCRIPTION,
  cell: (object, now) => formatAge(object.metadata?.creationTimestamp, now),
};

type Cell<T> = Column<T>["cell"];

/** A column that every `kubectl get` shows. Its type is `string` whatever its cells are, as in Kubernetes. */
export function column<T>(name: string, cell: Cell<T>): Column<T> {
  return { name, type: "string", priority: 0, cell };
}

/** A column that only `-o wide` shows. */
export function wideColumn<T>(name: string, cell: Cell<T>): Column<T> {
  return { name, type: "string", priority: 1, cell };
}

/** A column of whole numbers that every `kubectl get` shows. */
export function integerColumn<T>(name: string, cell: (object: T) => number): Column<T> {
  return { name, type: "integer", priority: 0, cell };
}

/** A column that says yes or no. */
export function booleanColumn<T>(name: string, cell: (object: T) => boolean): Column<T> {
  return { name, type: "boolean", priority: 0, cell };
}

/** What kinds without columns of their own show beside the name. */
export const createdAtColumn: Column<ApiObject> = {
  name: "Created At",
  type: "date",
  priority: 0,
  description: CREATED_DESCRIPTION,
  cell: (object) => object.metadata?.creationTimestamp ?? "<unknown>",
};
