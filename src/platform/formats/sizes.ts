const UNITS = ['bytes', 'KB', 'MB', 'GB', 'TB', 'PB'];

/** A size in bytes for people, such as 1.5 GB: decimal units, as download tools and file managers show them. */
export function formatSize(bytes: number): string {
  const unit = bytes < 1000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), UNITS.length - 1);
  const value = bytes / 1000 ** unit;
  return `${value.toFixed(unit === 0 || value >= 100 ? 0 : 1)} ${UNITS[unit]}`;
}
