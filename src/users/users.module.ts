import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { User } from '../auth/accounts/user.entity';
import { SignInModule } from '../auth/sign-in/sign-in.module';
import { AccountsService } from './accounts.service';
import { UsersController } from './users.controller';
import { UsersService } from './users.service';

@Module({
  imports: [SignInModule, TypeOrmModule.forFeature([User])],
  controllers: [UsersController],
  providers: [AccountsService, UsersService],
  exports: [AccountsService, UsersService],
})
export class UsersModule {}
