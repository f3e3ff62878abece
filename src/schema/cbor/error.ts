export class CborError extends Error {
  override readonly name = "CborError";
}
