/** The anchor of a heading as GitHub makes it: the site does the same, so that links work in both. */
export function slug(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Mark}\p{Number} _-]/gu, "")
    .replaceAll(" ", "-");
}
