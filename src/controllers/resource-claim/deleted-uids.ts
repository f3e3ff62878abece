/** UIDs of pods that were deleted lately, so that their end need not be verified with the server. */
const UIDS_MAX = 500;

export class DeletedUids {
  /** In the order of their use. */
  readonly #uids = new Set<string>();

  add(uid: string): void {
    this.#uids.delete(uid);
    this.#uids.add(uid);
    const [oldest] = this.#uids;
    if (this.#uids.size > UIDS_MAX && oldest !== undefined) this.#uids.delete(oldest);
  }

  has(uid: string): boolean {
    if (!this.#uids.has(uid)) return false;
    this.add(uid);
    return true;
  }
}
