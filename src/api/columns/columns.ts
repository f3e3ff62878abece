/** Columns that most kinds share, and constructors of columns. */
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

/** A column that every `kubectl get` shows. The type is `string` whatever the cells hold, as in Kubernetes. */
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

/** A column of booleans. */
export function booleanColumn<T>(name: string, cell: (object: T) => boolean): Column<T> {
  return { name, type: "boolean", priority: 0, cell };
}

/** The second column of kinds that define no columns. */
export const createdAtColumn: Column<ApiObject> = {
  name: "Created At",
  type: "date",
  priority: 0,
  description: CREATED_DESCRIPTION,
  cell: (object) => object.metadata?.creationTimestamp ?? "<unknown>",
};
