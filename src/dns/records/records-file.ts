/** The records in a file, so that a server that starts while the API server is away has answers. A line per service. */
import { TimeSlice } from "../../std/async/time-slice.ts";
import { readLineFile, writeLineFile } from "../../std/fs/line-file.ts";
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
  return await writeLineFile(path, HEADER, linesOf(records));
}

function* linesOf(records: ClusterRecords): Generator<Line> {
  for (const { namespace, name, service, slices } of records.entries()) {
    yield [namespace, name, service ?? null, [...slices]];
  }
}

/** Undefined when there is no file. Rejects when it is not one of this version, or cannot be read. */
export async function readRecordsFile(path: string): Promise<ClusterRecords | undefined> {
  const lines = await readLineFile(path, HEADER);
  if (lines === undefined) return undefined;
  const slice = new TimeSlice();
  const records = new ClusterRecords();
  for (const [namespace, name, service, slices] of lines as readonly Line[]) {
    records.setService(namespace, name, service ?? undefined);
    for (const [sliceName, record] of slices) records.setSlice(namespace, name, sliceName, record);
    await slice.yield();
  }
  return records;
}
