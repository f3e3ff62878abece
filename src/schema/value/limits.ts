/** Values nested deeper than any kind needs are refused before they exhaust the stack. */
export const depthMax = 200;

/**
 * Values in the body of one request: members of objects, items of arrays, and these containers. It bounds the time that
 * each step of a request computes: a pod of 1,000 containers has about 40,000 values.
 */
export const valuesMax = 50_000;

/** Values in an object to store, with those of its managedFields. */
export const storedValuesMax = 200_000;

/**
 * Members at the root of a custom resource. Steps of a write copy the root, which of 48,000 members takes 50 ms each
 * time.
 */
export const rootMembersMax = 10_000;

/** A text or message has more values than the reader accepts. */
export class TooManyValuesError extends Error {
  override readonly name = "TooManyValuesError";

  constructor(max: number, what = "values") {
    super(`more than ${max} ${what}`);
  }
}
