import t from "tap";
import { type ContainerReading, containerFamilies } from "./container-families.ts";
import { NO_DISK_USAGE } from "./disk-usage.ts";

const device = (name: string) => ({ device: name, reads: 1, writes: 2, readBytes: 3, writtenBytes: 4 });
const fileSystem = (name: string) => ({
  ...{ device: name, capacityBytes: 0, usedBytes: 0, inodes: 0, inodesFree: 0 },
  disk: { ...NO_DISK_USAGE, reads: 10, writes: 20 },
});

t.test("transfers are those of the cgroup's devices, and of the node's disks that it does not count", async (t) => {
  const reading = {
    usage: { devices: [device("/dev/sda")] },
    fileSystems: [fileSystem("/dev/sda"), fileSystem("/dev/sdb")],
  } as unknown as ContainerReading;
  const read = (name: string) => containerFamilies.find((family) => family.name === name)?.read(reading);
  const labels = (device: string) => ({ first: `device="${device}",` });
  t.same(read("container_fs_reads_total"), [
    { value: 1, ...labels("/dev/sda") },
    { value: 10, ...labels("/dev/sdb") },
  ]);
  t.same(read("container_fs_writes_total"), [
    { value: 2, ...labels("/dev/sda") },
    { value: 20, ...labels("/dev/sdb") },
  ]);
  // No file system counts bytes.
  t.same(read("container_fs_reads_bytes_total"), [{ value: 3, ...labels("/dev/sda") }]);
});
