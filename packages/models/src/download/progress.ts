/** From this size on, a download says how far it is. */
const LARGE = 10e6;

/** Says how far a large download is, in steps of a tenth. */
export function progress(
  what: string,
  size: number,
  onNotice: ((message: string) => void) | undefined,
): (bytes: number) => void {
  let last = -1;
  return (bytes) => {
    const tenths = Math.floor((10 * bytes) / size);
    if (size < LARGE || tenths <= last) return;
    last = tenths;
    onNotice?.(`${what}: ${(bytes / 1e6).toFixed(0)} of ${(size / 1e6).toFixed(0)} MB`);
  };
}
