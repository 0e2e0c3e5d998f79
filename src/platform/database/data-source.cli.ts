import 'reflect-metadata';
import { DataSource } from 'typeorm';
import { loadSettings } from '../config/load-settings';
import { dataSourceOptions } from './data-source';

/** TypeORM's own command reads it, such as `typeorm migration:generate --check`. */
export default new DataSource(dataSourceOptions(loadSettings(process.env)));
