/** The records in a file, so that a server that starts while the API server is away has answers. A line per service. */
import { readFile, rename, writeFile } from "node:fs/promises";
import { TimeSlice } from "../../std/async/time-slice.ts";
import { ClusterRecords, type ServiceRecord, type SliceRecord } from "./cluster-records.ts";

const HEADER = "svc DNS records 1";

type Line = readonly [
  namespace: string,
  name: string,
  service: ServiceRecord | null,
  slices: readonly (readonly [name: string, slice: SliceRecord])[],
];

/** The file is replaced as a whole. Returns its length in bytes. */
export async function writeRecordsFile(path: string, records: ClusterRecords): Promise<number> {
  const slice = new TimeSlice();
  const lines: string[] = [HEADER];
  for (const { namespace, name, service, slices } of records.entries()) {
    const line: Line = [namespace, name, service ?? null, [...slices]];
    lines.push(JSON.stringify(line));
    await slice.yield();
  }
  const temporary = `${path}.new`;
  const bytes = Buffer.from(`${lines.join("\n")}\n`);
  await writeFile(temporary, bytes, { mode: 0o600 });
  await rename(temporary, path);
  return bytes.length;
}

/** Undefined when there is no file. Rejects when it is not one of this version, or cannot be read. */
export async function readRecordsFile(path: string): Promise<ClusterRecords | undefined> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const [header, ...lines] = text.trimEnd().split("\n");
  if (header !== HEADER) throw new Error(`${path} does not start with ${JSON.stringify(HEADER)}`);
  const slice = new TimeSlice();
  const records = new ClusterRecords();
  for (const line of lines) {
    const [namespace, name, service, slices] = JSON.parse(line) as Line;
    records.setService(namespace, name, service ?? undefined);
    for (const [sliceName, record] of slices) records.setSlice(namespace, name, sliceName, record);
    await slice.yield();
  }
  return records;
}
