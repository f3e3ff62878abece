/** Reads terminal sizes from a stream of JSON objects, as Go's `json.Decoder`. */

export interface TerminalSize {
  readonly Width: number;
  readonly Height: number;
}

/** An object is shorter; more bytes without its end are garbage. */
const OBJECT_BYTES_MAX = 1024;
const SIZE_MAX = 65_535;

export class ResizeDecoder {
  #pending = "";
  /** Garbage ends the reading of sizes. */
  #failed = false;

  decode(data: Uint8Array): readonly TerminalSize[] {
    const sizes: TerminalSize[] = [];
    if (this.#failed) return sizes;
    this.#pending += Buffer.from(data.buffer, data.byteOffset, data.length).toString("latin1");
    for (;;) {
      this.#pending = this.#pending.trimStart();
      const end = this.#pending.indexOf("}");
      if (end === -1) {
        this.#failed = this.#pending.length > OBJECT_BYTES_MAX || !/^(?:\{|$)/.test(this.#pending);
        break;
      }
      const size = parseSize(this.#pending.slice(0, end + 1));
      this.#pending = this.#pending.slice(end + 1);
      if (size === undefined) this.#failed = true;
      else sizes.push(size);
      if (this.#failed) break;
    }
    if (this.#failed) this.#pending = "";
    return sizes;
  }
}

function parseSize(text: string): TerminalSize | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    const size = { Width: 0, Height: 0 };
    for (const [name, number] of Object.entries(value)) {
      // Go ignores the case of names, and values that are null.
      const key = { width: "Width", height: "Height" }[name.toLowerCase()] as keyof TerminalSize | undefined;
      if (key === undefined || number === null) continue;
      if (!Number.isInteger(number) || number < 0 || number > SIZE_MAX) return undefined;
      size[key] = number;
    }
    return size;
  } catch {
    return undefined;
  }
}
