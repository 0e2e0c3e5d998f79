import { DataSource, type DataSourceOptions } from 'typeorm';

/** TypeORM makes a Date of each timestamp of an entity. Here it stays text, as the entities declare it. */
export function newDataSource(options: DataSourceOptions): DataSource {
  const source = new DataSource(options);
  const { driver } = source;
  const hydrate = driver.prepareHydratedValue.bind(driver);
  driver.prepareHydratedValue = (value, column) =>
    column.type === 'timestamptz' ? (value as unknown) : (hydrate(value, column) as unknown);
  return source;
}
