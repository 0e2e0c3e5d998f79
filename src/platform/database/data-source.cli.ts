import 'reflect-metadata';
import { DataSource } from 'typeorm';
import { loadSettings } from '../config/load-settings';
import { dataSourceOptions } from './data-source';

/** The data source of TypeORM's own commands, such as `typeorm migration:generate --check`. */
export default new DataSource(dataSourceOptions(loadSettings(process.env)));
