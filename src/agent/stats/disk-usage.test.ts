import t from "tap";
import { NO_DISK_USAGE, parseDiskUsage, readDiskUsage } from "./disk-usage.ts";

const TEXT = `   8       0 sda 1 2 3 4 5 6 7 8 9 10 11 0 0 0 0
 259       3 nvme0n1p3 10 20 30 40 50 60 70 80 90 100 110
 259     300 nvme9n1 1 1 1 1 1 1 1 1 1 1 1
`;

t.test("parseDiskUsage() finds the device by its number", async (t) => {
  t.same(parseDiskUsage(TEXT, (259 << 8) | 3), {
    ...{ reads: 10, readsMerged: 20, sectorsRead: 30, readMs: 40 },
    ...{ writes: 50, writesMerged: 60, sectorsWritten: 70, writeMs: 80 },
    ...{ inProgress: 90, busyMs: 100, weightedMs: 110 },
  });
  t.equal(parseDiskUsage(TEXT, 8 << 8).inProgress, 9);
  t.equal(parseDiskUsage(TEXT, (259 << 8) | (300 & 0xff) | ((300 & 0xfff00) << 12)).busyMs, 1, "minor above 255");
  t.same(parseDiskUsage(TEXT, 1), NO_DISK_USAGE);
});

t.test("readDiskUsage() reads the device of a directory", async (t) => {
  t.same(Object.keys(await readDiskUsage(t.testdir({}))), Object.keys(NO_DISK_USAGE));
});
