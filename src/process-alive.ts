/** Whether a process with this id runs on this machine. */
export function isAlive(id: number): boolean {
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    // EPERM: it is alive and belongs to another user.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
