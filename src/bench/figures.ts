/** The results of the measurements, in order. */
import { cpus } from "node:os";

/** Figures of one measurement by unit; the unit may include a description. */
export type Values = Readonly<Record<string, number>>;

interface Row {
  readonly what: string;
  readonly values: Values;
}

export class Figures {
  readonly #rows: Row[] = [];
  readonly #title: string;
  readonly #json: boolean;

  /** `program`: the measured program. With `json` everything is printed at the end, otherwise row by row. */
  constructor(program: string, json: boolean) {
    this.#title = `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.version}, ${program}`;
    this.#json = json;
    if (!json) console.log(this.#title);
  }

  add(what: string, value: number, unit: string): void {
    this.addAll(what, { [unit]: value });
  }

  /** One row of several figures, by unit. */
  addAll(what: string, values: Values): void {
    const rounded = Object.fromEntries(
      Object.entries(values).map(([unit, value]) => [unit, Number(value.toPrecision(3))]),
    );
    this.#rows.push({ what, values: rounded });
    if (this.#json) return;
    const cells = Object.entries(rounded).map(([unit, value]) => `${String(value).padStart(8)} ${unit}`);
    console.log(`${what.padEnd(WIDTH)}${cells.join(" ")}`);
  }

  finish(): void {
    if (this.#json) console.log(JSON.stringify({ machine: this.#title, rows: this.#rows }, undefined, 2));
  }
}

const WIDTH = 62;
